"""What runs a learner's engine in the stages of lesson 11."""
