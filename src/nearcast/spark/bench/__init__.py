"""What matching on Spark costs, beside the embedded engine and joins in SQL, on the same generated world."""
