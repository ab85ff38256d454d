/** Written by the build: see `.packaging/console-icons.mjs`. */
declare module 'virtual:icons' {
  /** The elements of each icon: their names and attributes. */
  export const ICONS: Readonly<
    Record<
      import('./icon-names.ts').IconName,
      readonly (readonly [tag: string, attributes: Readonly<Record<string, string>>])[]
    >
  >;
}
