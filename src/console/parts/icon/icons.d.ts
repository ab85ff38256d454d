/** Made by the build: see `.packaging/console-icons.mjs`. */
declare module 'virtual:icons' {
  /** The elements of each icon of `ICON_NAMES`: their names and attributes. */
  export const ICONS: Readonly<
    Record<string, readonly (readonly [tag: string, attributes: Readonly<Record<string, string>>])[]>
  >;
}
