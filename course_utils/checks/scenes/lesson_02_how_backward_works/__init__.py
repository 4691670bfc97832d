"""What answers to the exercises of lesson 02 are tried on."""
