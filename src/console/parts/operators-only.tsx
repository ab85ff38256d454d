import type { ComponentChildren } from 'preact';
import { Empty, Page } from '../parts.tsx';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';

/** A page for operators; others read that it is not for them. */
export function OperatorsOnly({ title, children }: { title: string; children: ComponentChildren }) {
  const { t } = useTexts();
  const { person } = useMember();
  if (person.operator) return <>{children}</>;
  return (
    <Page title={title}>
      <Empty title={t('system.operatorsOnly')} />
    </Page>
  );
}
