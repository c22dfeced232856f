"""One engine of columns for stores to which any number of servers write. So far: which document counts where."""
