import type { ComponentChildren } from 'preact';
import { type ChipKind, STATE_ICONS } from '../parts.tsx';
import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import './timeline.css';

/** What happened, in order. */
export function Timeline({ children }: { children: ComponentChildren }) {
  return <ol class="timeline">{children}</ol>;
}

interface TimelineItemProps {
  kind: ChipKind;
  title: string;
  at: string;
  /** What the other side answered. */
  reply?: string;
  /** What can be done about it. */
  remedy?: string;
  children?: ComponentChildren;
}

/** One step of a timeline. Its time has seconds: the order matters. */
export function TimelineItem({ kind, title, at, reply = '', remedy = '', children }: TimelineItemProps) {
  const { time } = useTexts();
  return (
    <li>
      <span class={`state ${kind}`}>
        <Icon name={STATE_ICONS[kind]} />
      </span>
      <div class="line">
        <strong>{title}</strong> <time dateTime={at}>{time(at)}</time>
      </div>
      {reply !== '' && <p class="reply">{reply}</p>}
      {remedy !== '' && <p class="remedy">{remedy}</p>}
      {children}
    </li>
  );
}
