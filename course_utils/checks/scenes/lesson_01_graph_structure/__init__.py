"""What answers to the exercises of lesson 01 are tried on."""
