import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Page, Status, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { SEQUENCES, type Sequence } from './model.ts';
import { useWords, type Words } from './words.ts';
import './sequences.css';

/** The sequences of the account. */
export function SequenceListPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const words = useWords();
  const parameters = { limit: 50, lastKey: location.query['lastKey'] };
  const list = useOperation(SEQUENCES, parameters);
  const create = may('createSequence') && (
    <a class="button primary" href={href('sequences/new')}>
      <Icon name="plus" />
      {t('sequences.new')}
    </a>
  );
  return (
    <Page
      title={t('page.sequences')}
      question={t('sequences.question')}
      curl={addressOf(SEQUENCES, parameters)}
      actions={create}
    >
      <Loaded data={list}>
        {({ sequences, nextKey }) => (
          <>
            {sequences.length === 0 ? (
              <Empty title={t('sequences.empty')} icon="route">
                <p>{t('sequences.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('page.sequences')}
                isList
                heads={[
                  t('people.name'),
                  t('messages.status'),
                  { text: t('sequences.inProgress'), end: true },
                  { text: t('sequences.completed'), end: true },
                  { text: t('campaigns.count.sent'), end: true },
                  { text: t('sequences.changed'), end: true },
                ]}
              >
                {sequences.map((sequence) => (
                  <Row key={sequence.sequenceId} sequence={sequence} words={words} />
                ))}
              </Table>
            )}
            <Pager path="sequences" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Row({ sequence, words }: { sequence: Sequence; words: Words }) {
  const { t, number } = useTexts();
  const { href } = useNavigation();
  const { sequenceId, name, status, trigger, people, stepCounts, updatedAt } = sequence;
  return (
    <tr>
      <th scope="row">
        <a href={href(`sequences/${encodeURIComponent(sequenceId)}`)}>{name}</a>
        <span class="small">{words.trigger(trigger)}</span>
      </th>
      <td class="aside">
        <Status name={status} prefix="sequences.status" />
      </td>
      <td class="second">
        {number(people.inProgress)} <span class="sequence-short">{t('sequences.inProgress.short')}</span>
      </td>
      <td>{number(people.ended['completed'] ?? 0)}</td>
      <td>{number(stepCounts.reduce((sum, { sent }) => sum + sent, 0))}</td>
      <td class="when">
        <Time at={updatedAt} />
      </td>
    </tr>
  );
}
