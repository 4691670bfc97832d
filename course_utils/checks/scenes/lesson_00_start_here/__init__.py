"""What answers to the exercises of lesson 00 are tried on."""
