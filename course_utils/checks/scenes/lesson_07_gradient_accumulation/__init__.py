"""What answers to the exercises of lesson 07 are tried on."""
