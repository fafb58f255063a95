"""`tir.tensor_intrin`: the names of the tensor intrinsics of each machine."""
