import { useMemo } from 'preact/hooks';
import { renderDesign } from '../../../mail/blocks/render.ts';
import { useOperation } from '../../data.ts';
import type { Design } from '../../parts/block-editor/design.ts';
import { Failure } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { Thumbnail } from './template-gallery.tsx';
import './template-gallery.css';

/** What the content of a template begins with. */
export interface Start {
  name: string;
  type: 'transactional' | 'marketing' | null;
  subject: string;
  /** Null: the first lines of HTML. */
  html: string | null;
  /** Null: the author writes HTML. */
  design: Design | null;
}

/** The colors of an empty mail. */
const THEME: Design['theme'] = {
  accent: '#2454d6',
  background: '#f1f3f7',
  text: '#1d2433',
  width: 600,
  font: 'system',
};

const EMPTY: Design = {
  version: 1,
  theme: THEME,
  blocks: [
    { id: 'heading', type: 'heading', level: 1, content: [] },
    { id: 'text', type: 'text', content: { type: 'doc', content: [{ type: 'paragraph' }] } },
    { id: 'footer', type: 'footer' },
  ],
};

const EMPTY_HTML = renderDesign(EMPTY);

interface StartChoiceProps {
  /** Whether the author may also write HTML. */
  hasHtml: boolean;
  onChoose: (start: Start) => void;
}

/** The ready-made designs, an empty one, and the author's own HTML. */
export function StartChoice({ hasHtml, onChoose }: StartChoiceProps) {
  const { t, language } = useTexts();
  const list = useOperation('/web-setup/templates/starters', { language });
  const designs = useMemo(
    () => list.value?.starters.map((starter) => ({ ...starter, html: renderDesign(starter.design) })) ?? [],
    [list.value],
  );
  const empty = { name: '', type: null, subject: '', html: EMPTY_HTML, design: EMPTY };
  return (
    <>
      <h2 class="start-title">{t('templates.start')}</h2>
      {list.error !== null && <Failure error={list.error} retry={list.reload} />}
      <ul class="gallery">
        <StartItem
          name={t('templates.start.empty')}
          hint={t('templates.start.empty.hint')}
          html={EMPTY_HTML}
          onChoose={() => onChoose(empty)}
        />
        {hasHtml && (
          <StartItem
            name={t('templates.start.html')}
            hint={t('templates.start.html.hint')}
            html=""
            onChoose={() => onChoose({ ...empty, html: null, design: null })}
          />
        )}
        {designs.map(({ starterId, name, description, type, subject, html, design }) => (
          <StartItem
            key={starterId}
            name={name}
            hint={description}
            html={html}
            onChoose={() => onChoose({ name, type, subject, html, design })}
          />
        ))}
      </ul>
    </>
  );
}

interface StartItemProps {
  name: string;
  hint: string;
  html: string;
  onChoose: () => void;
}

function StartItem({ name, hint, html, onChoose }: StartItemProps) {
  return (
    <li>
      <Thumbnail html={html} />
      <div class="gallery-text">
        <button type="button" class="start" onClick={onChoose}>
          {name}
        </button>
        <span class="small" title={hint}>
          {hint}
        </span>
      </div>
    </li>
  );
}
