// What a page ends when another one is shown.

/** Return one function that calls several. @param {...(void | (() => void))} ends @returns {() => void} */
export function onLeave(...ends) {
  return () => ends.forEach((end) => end?.());
}
