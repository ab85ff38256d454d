import { useEffect, useRef, useState } from 'preact/hooks';
import { VARIABLE } from '../../../mail/blocks/variable.ts';
import type { DataOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { MailFrame } from '../../parts/preview/mail-frame.tsx';
import { storeHtml } from '../../parts/preview/stored-html.ts';
import { Time } from '../../parts/time.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { type TextKey, type Texts, useTexts } from '../../texts.ts';
import './template-gallery.css';

type Template = DataOf<'/web-setup/templates'>['templates'][number];

/** Thumbnails that are stored at the same time. */
const MAX_STORING = 3;
/** Longer content is not shown as a thumbnail: previews are limited in total. */
const MAX_THUMBNAIL = 256 * 1024;
/** Thumbnails are shown shortly before they are scrolled into view. */
const MARGIN_PX = 200;
/** What the footer of the account is called. */
const FOOTER: ReadonlyMap<string, TextKey> = new Map([
  ['company_address_html', 'blocks.footer.address'],
  ['unsubscribe_email_html', 'blocks.footer.unsubscribe'],
  ['report_abuse_email_html', 'blocks.footer.report'],
]);

/** Templates as a grid of thumbnails. */
export function TemplateGallery({ templates }: { templates: readonly Template[] }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
    <ul class="gallery" aria-label={t('page.templates')}>
      {templates.map((template) => {
        const { templateId, name, type, subject, syntax, html, updatedAt } = template;
        return (
          <li key={templateId}>
            <Thumbnail key={updatedAt} html={html} isLiquid={syntax === 'liquid'} />
            <div class="gallery-text">
              <a href={href(`templates/${encodeURIComponent(templateId)}`)}>{name || templateId}</a>
              <span class="small">{subject ?? '–'}</span>
              <span class="small">
                {t(type === undefined ? 'templates.stream.both' : `templates.stream.${type}`)} ·{' '}
                <Time at={updatedAt} />
              </span>
            </div>
          </li>
        );
      })}
    </ul>
  );
}

/**
 * The stored content, scaled down, while it is in view: only those frames exist. It is hidden from screen readers. Variables
 * have their defaults, but for Liquid, whose filters look like them.
 */
export function Thumbnail({ html, isLiquid = false }: { html: string; isLiquid?: boolean }) {
  const { t } = useTexts();
  const box = useRef<HTMLDivElement>(null);
  const { accountId } = useMember();
  const [isInView, setInView] = useState(false);
  const [id, setId] = useState<string | null>(null);
  useEffect(() => {
    if (box.current === null) return undefined;
    const observer = new IntersectionObserver(([entry]) => setInView(entry?.isIntersecting === true), {
      rootMargin: `${MARGIN_PX}px`,
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const isShown = isInView && html !== '' && html.length <= MAX_THUMBNAIL;
  useEffect(() => {
    if (!isShown) return undefined;
    const abort = new AbortController();
    const shown = isLiquid ? html : withDefaults(html, t);
    storeInTurn(shown, accountId, abort.signal).then(
      (stored) => {
        if (!abort.signal.aborted) setId(stored);
      },
      // Without its thumbnail the template is still in the grid.
      () => setId(null),
    );
    return () => {
      abort.abort();
      // Stored content is kept for some minutes only.
      setId(null);
    };
  }, [isShown, html, isLiquid, t, accountId]);
  return (
    <div class="thumbnail" ref={box} aria-hidden="true" inert>
      {isShown && id !== null ? (
        <MailFrame id={id} title="" html={html} />
      ) : (
        <Icon name={html === '' ? 'file-text' : 'eye'} />
      )}
    </div>
  );
}

/** HTML as it is without values: defaults, names of the parts of the footer, and other variables as they are written. */
function withDefaults(html: string, t: Texts['t']): string {
  return html.replaceAll(VARIABLE, (written: string, name: string, fallback?: string) => {
    const key = FOOTER.get(name);
    return key === undefined ? (fallback?.trim() ?? written) : t(key);
  });
}

/** Thumbnails that wait for their turn. */
const waiting: (() => void)[] = [];
let storing = 0;

/** Stores HTML when fewer than `MAX_STORING` others are being stored; throws when `signal` is aborted. */
async function storeInTurn(html: string, accountId: string, signal: AbortSignal): Promise<string> {
  if (storing >= MAX_STORING) await new Promise<void>((resolve) => waiting.push(resolve));
  storing++;
  try {
    signal.throwIfAborted();
    return await storeHtml(html, accountId, signal);
  } finally {
    storing--;
    waiting.shift()?.();
  }
}
