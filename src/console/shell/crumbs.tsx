import { createContext } from 'preact';
import { useContext, useEffect } from 'preact/hooks';
import { Icon } from '../parts/icon/icon.tsx';
import { useTexts } from '../texts.ts';

const TitleContext = createContext<(title: string) => void>(() => {});
/** What receives the title of the page that is shown. */
export const TitleProvider = TitleContext.Provider;

/** States the title of a page: in the tab of the browser, and in the top bar. */
export function usePageTitle(title: string): void {
  const show = useContext(TitleContext);
  useEffect(() => {
    document.title = `${title} · Postrider`;
    show(title);
  }, [title, show]);
}

interface CrumbsProps {
  /** The page in the navigation; null: none. */
  section: { title: string; address: string } | null;
  /** The title of the page that is shown. */
  title: string;
}

/** Where the page is: its section with a way back to its list, and its title. */
export function Crumbs({ section, title }: CrumbsProps) {
  const { t } = useTexts();
  const isDetail = section !== null && title !== '' && title !== section.title;
  return (
    <nav class="crumbs" aria-label={t('app.crumbs')}>
      <ol>
        {isDetail && (
          <li>
            <a href={section.address}>{section.title}</a>
            <Icon name="chevron-right" />
          </li>
        )}
        <li>
          <span class="cut" aria-current="page">
            {isDetail ? title : (section?.title ?? title)}
          </span>
        </li>
      </ol>
    </nav>
  );
}
