/** Decompress zstd data; `output`, if given, has the size of the result. */
export function decompress(data: Uint8Array, output?: Uint8Array): Uint8Array;
