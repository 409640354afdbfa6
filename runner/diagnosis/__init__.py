"""What went wrong with each question, from where the documents are to what the answer says."""
