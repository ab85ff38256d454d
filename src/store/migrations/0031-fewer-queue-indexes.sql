-- Each delivery had to change an entry of this index, which only the deletion of a domain read.
DROP INDEX queue_by_domain;
