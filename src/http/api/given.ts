/** The fields that a change names: what is left out stays as it was. */
export function given<Body extends object>(
  body: Body,
): { [Field in keyof Body]?: Exclude<Body[Field], undefined> } {
  // Filtering keeps the names; the type system only cannot see it through the entries.
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Body]?: Exclude<Body[Field], undefined>;
  };
}
