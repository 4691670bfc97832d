"""What answers to the exercises of lesson 04 are tried on."""
