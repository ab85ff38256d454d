import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../../parts/icon/icon.tsx';
import { useNavigation } from '../../routing.ts';
import './section.css';

/** Narrow screens, as in table.css. */
const NARROW = '(width < 45rem)';

interface SectionProps {
  id: string;
  title: string;
  /** The state of the part, next to its title. */
  chip?: ComponentChildren;
  children: ComponentChildren;
}

/** A part of the page, folded on narrow screens. The address opens one and scrolls to it (`section`). */
export function Section({ id, title, chip, children }: SectionProps) {
  const { location } = useNavigation();
  const isChosen = location.query['section'] === id;
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (isChosen) details.current?.scrollIntoView();
  }, [isChosen]);
  return (
    <details class="card section" open={isChosen || !window.matchMedia(NARROW).matches} ref={details}>
      <summary class="card-head">
        <h2>{title}</h2>
        {chip}
        <Icon name="chevron-down" />
      </summary>
      <div class="card-body">{children}</div>
    </details>
  );
}
