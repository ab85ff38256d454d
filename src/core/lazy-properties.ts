/** Returns an object whose properties are created at their first use, each once, by the functions in `create`. */
export function lazyProperties<Parts extends object>(
  create: { [Name in keyof Parts]: () => Parts[Name] },
): Parts {
  const parts = Object.defineProperties(
    {},
    Object.fromEntries(
      Object.entries<() => unknown>(create).map(([name, createPart]) => [
        name,
        {
          configurable: true,
          enumerable: true,
          get: () => {
            const value = createPart();
            Object.defineProperty(parts, name, { value, enumerable: true });
            return value;
          },
        },
      ]),
    ),
  );
  // `parts` has exactly the properties of `create`.
  return parts as Parts;
}
