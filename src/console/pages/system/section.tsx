import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useNavigation } from '../../routing.ts';
import './section.css';

/** Narrow screens, as in table.css. */
const NARROW = '(width < 45rem)';

/** A part of the page, folded on narrow screens. The address opens one and scrolls to it (`section`). */
export function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  const { location } = useNavigation();
  const isChosen = location.query['section'] === id;
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (isChosen) details.current?.scrollIntoView();
  }, [isChosen]);
  return (
    <details class="section" open={isChosen || !window.matchMedia(NARROW).matches} ref={details}>
      <summary>
        <h2>{title}</h2>
      </summary>
      {children}
    </details>
  );
}
