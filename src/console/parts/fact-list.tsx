import type { ComponentChildren } from 'preact';

interface FactListProps {
  facts: readonly (readonly [name: string, value: ComponentChildren])[];
  /** CSS class of the values. */
  valueClass?: string;
}

/** A list of names with their values, without those that are empty. */
export function FactList({ facts, valueClass }: FactListProps) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => Boolean(value))
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class={valueClass}>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
