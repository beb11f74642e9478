// Exists so that the precompiled gRPC header has an owner.
