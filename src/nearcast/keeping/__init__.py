"""What a hub keeps beyond its process: truth and log in a store, a checkpoint of the index, and the way back."""
