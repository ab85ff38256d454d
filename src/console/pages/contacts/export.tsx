import { saveExport, withQuery } from '../../api.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

/** Saves the contacts that match the search, as a CSV. */
export function Export({ filters }: { filters: Readonly<Record<string, string | undefined>> }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const save = () =>
    run(async () => {
      const path = withQuery('/console/exports/contacts', { ...filters, account: accountId });
      await saveExport(path, 'contacts.csv');
      return t('messages.content.saved', { file: 'contacts.csv' });
    });
  return (
    <section aria-label={t('contacts.export')}>
      <p>
        <button class="button" type="button" disabled={outcome?.running === true} onClick={() => void save()}>
          {t('contacts.export')}
        </button>
      </p>
      <Outcome of={outcome} />
      <p class="small">{t('contacts.export.hint')}</p>
    </section>
  );
}
