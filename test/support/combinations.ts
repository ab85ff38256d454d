/** All objects with a subset of the properties, with every combination of their values; the first is empty. */
export function combinations<T extends object>(
  values: { [Name in keyof T]-?: readonly T[Name][] },
): Partial<T>[] {
  let all: Partial<T>[] = [{}];
  // Sound: the keys of `values` are those of T.
  for (const name of Object.keys(values) as (keyof T)[])
    all = all.flatMap((one) => [one, ...values[name].map((value) => ({ ...one, [name]: value }))]);
  return all;
}
