import { useMemo } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { StoredFrame } from '../../parts/preview/stored-frame.tsx';
import { Card, Loaded } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

type Links = DataOf<'/web-setup/campaigns/{campaignId}/analytics'>['links'];

interface ClickMapProps {
  campaignId: string;
  /** The name of the winner of an A/B test, whose mail is shown. */
  winner: string | undefined;
  links: Links;
  /** Clicks on all links. */
  clicks: number;
}

/** The mail with the number of clicks at each link. The table next to it has the same numbers. */
export function ClickMap(props: ClickMapProps) {
  const { t } = useTexts();
  return (
    <Card title={t('campaigns.clickMap')}>
      <div class="card-body">
        <Map {...props} />
      </div>
    </Card>
  );
}

function Map({ campaignId, winner, links, clicks }: ClickMapProps) {
  const { t } = useTexts();
  const content = useOperation('/web-setup/campaigns/{campaignId}/content', { campaignId });
  return (
    <Loaded data={content}>
      {({ html: first, variants }) => {
        const html = variants.find(({ name }) => name === winner)?.html ?? first;
        return html === '' ? (
          <p>{t('campaigns.clickMap.textOnly')}</p>
        ) : (
          <>
            <MarkedMail html={html} links={links} clicks={clicks} />
            <p class="small">{t('campaigns.clickMap.hint')}</p>
          </>
        );
      }}
    </Loaded>
  );
}

function MarkedMail({
  html,
  links,
  clicks,
}: Omit<ClickMapProps, 'campaignId' | 'winner'> & { html: string }) {
  const { t, number, percent } = useTexts();
  const marked = useMemo(
    () => markedHtml(html, links, (count) => `${number(count)} (${percent(count, clicks)})`),
    [html, links, clicks, number, percent],
  );
  return <StoredFrame title={t('campaigns.clickMap')} html={marked} />;
}

const BADGE =
  'display:inline-block;margin:0 4px;padding:1px 6px;border-radius:8px;background:#1f2937;color:#fff;font:bold 12px sans-serif;text-decoration:none';

/**
 * The HTML with the clicks next to each link, which leads nowhere. It is parsed without a window: nothing runs or is loaded,
 * although the browser reports handlers and styles that the policy of the page forbids. Links to the same address have the
 * clicks of all of them, and links with variables have none.
 */
function markedHtml(html: string, links: Links, labelOf: (clicks: number) => string): string {
  const parsed = new DOMParser().parseFromString(html, 'text/html');
  const clicksOf = new globalThis.Map(links.map((link) => [link.url, link.clicks]));
  for (const link of parsed.querySelectorAll('a[href]')) {
    const href = link.getAttribute('href')?.trim() ?? '';
    link.removeAttribute('href');
    if (!/^https?:/i.test(href) || href.includes('{{')) continue;
    const count = clicksOf.get(href) ?? clicksOf.get(normalized(href)) ?? 0;
    const badge = parsed.createElement('span');
    badge.setAttribute('style', BADGE);
    badge.textContent = labelOf(count);
    link.append(badge);
  }
  return `<!doctype html>${parsed.documentElement.outerHTML}`;
}

function normalized(href: string): string {
  return URL.canParse(href) ? new URL(href).href : href;
}
