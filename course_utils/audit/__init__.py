"""Auditing: a training, watched for mistakes that raise no error."""
