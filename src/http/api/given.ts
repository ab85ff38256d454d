/** The fields of a body that are not undefined. */
export function given<Body extends object>(
  body: Body,
): { [Field in keyof Body]?: Exclude<Body[Field], undefined> } {
  // Sound: filtering the entries keeps the names and types of the others.
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Body]?: Exclude<Body[Field], undefined>;
  };
}
