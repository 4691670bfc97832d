"""What answers to the exercises of lesson 09 are tried on."""
