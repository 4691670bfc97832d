"""Right and wrong answers to the stages of lesson 11."""
