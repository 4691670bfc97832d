"""What answers to the exercises of lesson 08 are tried on."""
