"""What runs answers to the exercises of lesson 05."""
