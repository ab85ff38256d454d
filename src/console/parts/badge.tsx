import type { ComponentChildren } from 'preact';

/** A word with a color, for states that no other page has. */
export function Badge(props: { kind: 'good' | 'bad' | 'open'; children: ComponentChildren }) {
  return <span class={`status ${props.kind}`}>{props.children}</span>;
}
