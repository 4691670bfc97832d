"""What answers to the exercises of lesson 05 are tried on."""
