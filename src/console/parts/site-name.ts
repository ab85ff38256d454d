/** The mail servers of a site and, unless it is the default one, the egress pool: `mx1.example.net (marketing)`. */
export function siteName({ site, pool }: { site: string; pool: string }): string {
  const hosts = site.endsWith(` via ${pool}`) ? site.slice(0, -` via ${pool}`.length) : site;
  const names = hosts.replaceAll(',', ', ');
  return pool === 'default' ? names : `${names} (${pool})`;
}
