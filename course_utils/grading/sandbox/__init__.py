"""What lives beside a learner's code, and is trusted with nothing: whoever runs here may read and change all of it.

So it knows no case before it is sent, no judge, no right answer and no other submission.
"""
