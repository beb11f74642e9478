// Exists so that the precompiled test headers have an owner.
