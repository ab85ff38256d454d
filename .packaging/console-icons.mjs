// The icons of the console: `virtual:icons` has the elements of those that parts/icon/icon-names.ts lists, from Lucide.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const MODULE = 'virtual:icons';
const NAME = /'([a-z0-9-]+)'/g;

/** A plugin of Vite. `source`: the directory of the console. */
export function consoleIcons(source) {
  return {
    name: 'icons of the console',
    resolveId: (id) => (id === MODULE ? `\0${MODULE}` : undefined),
    load: (id) => {
      if (id !== `\0${MODULE}`) return undefined;
      const list = readFileSync(join(source, 'parts/icon/icon-names.ts'), 'utf8');
      const { icons: lucide } = createRequire(import.meta.url)('@iconify-json/lucide/icons.json');
      const icons = {};
      for (const [, name] of list.matchAll(NAME)) {
        if (!Object.hasOwn(lucide, name)) throw new Error(`Lucide has no icon "${name}": see parts/icon/icon-names.ts`);
        icons[name] = elementsOf(lucide[name].body);
      }
      return `export const ICONS = ${JSON.stringify(icons)};`;
    },
  };
}

/** The elements of a drawing: their names and attributes. The attributes of all icons are those of `Icon`. */
function elementsOf(body) {
  return [...body.matchAll(/<(\w+)([^>]*)\/>/g)].map(([, name, attributes]) => [
    name,
    Object.fromEntries(
      [...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].flatMap(([, key, value]) =>
        /^(?:fill|stroke)/.test(key) ? [] : [[key, value]],
      ),
    ),
  ]);
}
