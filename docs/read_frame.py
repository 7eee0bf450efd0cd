import sys
import pyarrow.feather as feather

table = feather.read_table(sys.argv[1])
positions = table["position"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
print({key.decode(): value.decode() for key, value in table.schema.metadata.items()})
print(table.num_rows, "particles, centre", positions.mean(axis=0), "columns", table.column_names)
