/** A record whose fields that can be null are optional. */
export type WithoutNulls<T> = { [Field in keyof T as null extends T[Field] ? never : Field]: T[Field] } & {
  [Field in keyof T as null extends T[Field] ? Field : never]?: Exclude<T[Field], null>;
};

/** The fields that are not null: clients of the API declare fields without a value as absent. Not deep. */
export function withoutNulls<T extends object>(record: T): WithoutNulls<T> {
  // Sound: only fields that are null are left out.
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null)) as WithoutNulls<T>;
}
