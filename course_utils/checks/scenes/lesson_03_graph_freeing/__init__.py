"""What answers to the exercises of lesson 03 are tried on."""
