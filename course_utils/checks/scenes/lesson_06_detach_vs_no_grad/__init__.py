"""What answers to the exercises of lesson 06 are tried on."""
