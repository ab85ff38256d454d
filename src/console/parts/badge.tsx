import type { ComponentChildren } from 'preact';

/** A colored label of a state that `Status` does not know. */
export function Badge(props: { kind: 'good' | 'bad' | 'open'; children: ComponentChildren }) {
  return <span class={`status ${props.kind}`}>{props.children}</span>;
}
