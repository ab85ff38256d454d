/** The address of an image of the account within the console, whose pages show nothing of other hosts. `url`: its public address. */
export function imageAddress(url: string): string {
  return `/console/images/${encodeURIComponent(url.split('/').at(-1) ?? '')}`;
}
