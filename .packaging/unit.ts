import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The files of systemd that both packages contain: name and text. `root`: the project's directory. */
export function systemdUnits(root: string): Record<string, string> {
  const unit = readFileSync(join(root, 'systemd/postrider.service'), 'utf8');
  return {
    'postrider.service': unit,
    'postrider@.service': instanceUnit(unit),
    'system-postrider.slice': readFileSync(join(root, 'systemd/system-postrider.slice'), 'utf8'),
  };
}

/** What distinguishes the unit of an instance from that of the only daemon: src/config/installations.ts. */
const CHANGES: readonly (readonly [from: string | RegExp, to: string])[] = [
  [
    /^# The unit of Postrider .*\n/g,
    '# One of several daemons of Postrider on this machine: postrider@NAME. Change settings of all with: systemctl edit postrider@,\n# of one with: systemctl edit postrider@NAME\n',
  ],
  ['Description=Postrider mail platform\n', 'Description=Postrider mail platform, %i\n'],
  ['ConditionPathExists=/etc/postrider/', 'ConditionPathExists=/etc/postrider-%i/'],
  ['--config /etc/postrider/postrider.toml', '--instance %i'],
  // A user of its own: another instance can neither read its files nor send signals to its processes.
  ['User=postrider\n', 'User=postrider-%i\n'],
  ['Group=postrider\n', 'Group=postrider-%i\n'],
  ['StateDirectory=postrider\n', 'StateDirectory=postrider-%i\n'],
  ['ConfigurationDirectory=postrider\n', 'ConfigurationDirectory=postrider-%i\n'],
  ['# Owner root, group postrider:', '# Owner root, group postrider-NAME:'],
  ['/etc/credstore/postrider.master-key', '/etc/credstore/postrider-NAME.master-key'],
  ['LoadCredential=master.key:postrider.master-key', 'LoadCredential=master.key:postrider-%i.master-key'],
  [
    /^# Measured: [^\n]*\n(?:#[^\n]*\n)*MemoryHigh=.*\nMemoryMax=.*\n/gm,
    '# All instances share the limits of memory of this slice.\nSlice=system-postrider.slice\n',
  ],
];

function instanceUnit(unit: string): string {
  return CHANGES.reduce((text, [from, to]) => {
    const changed = text.replaceAll(from, to);
    if (changed === text) throw new Error(`systemd/postrider.service does not contain ${String(from)}`);
    return changed;
  }, unit);
}
