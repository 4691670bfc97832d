"""What answers to the exercises of lesson 10 are tried on."""
