import { withQuery } from '../../api.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

/** A link to the contacts that match the search, as a CSV. */
export function Export({ filters }: { filters: Readonly<Record<string, string | undefined>> }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  return (
    <section aria-label={t('contacts.export')}>
      <p>
        <a
          class="button"
          download="contacts.csv"
          href={withQuery('/console/exports/contacts', { ...filters, account: accountId })}
        >
          {t('contacts.export')}
        </a>
      </p>
      <p class="small">{t('contacts.export.hint')}</p>
    </section>
  );
}
