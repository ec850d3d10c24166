// What the kernel offers and Swift cannot see.
