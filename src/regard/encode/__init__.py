"""What a person does with a model that reads: vectors for texts, guesses for hidden words, labels."""
