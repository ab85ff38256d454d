import { ICONS } from 'virtual:icons';
import { h } from 'preact';
import type { IconName } from './icon-names.ts';
import './icon.css';

/** An icon. Screen readers do not read it: it has text next to it, or its button has an `aria-label`. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {ICONS[name]?.map(([tag, attributes], index) => h(tag, { key: index, ...attributes }))}
    </svg>
  );
}
