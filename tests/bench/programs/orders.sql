-- Inserts, an index, joins, a window function, updates; ROWS is replaced by a number.
create table customer(id integer primary key, name text, region integer);
create table purchase(id integer primary key, customer integer, amount integer, note text);
begin;
with recursive n(i) as (values(1) union all select i + 1 from n where i < ROWS / 20)
  insert into customer select i, 'customer ' || (i * 7919 % 10007), i * 31 % 50 from n;
with recursive n(i) as (values(1) union all select i + 1 from n where i < ROWS)
  insert into purchase select i, 1 + i * 7919 % (ROWS / 20), i * 104729 % 5000, printf('note %d of %x', i, i * 31) from n;
commit;
create index by_customer on purchase(customer, amount);
create index by_note on purchase(note);
select region, count(*), sum(amount), max(note) from purchase join customer on customer.id = purchase.customer
  group by region order by 3 desc limit 10;
select count(*) from purchase a join purchase b on a.customer = b.customer and a.amount < b.amount;
select name, total from (select name, sum(amount) over (partition by region order by customer.id, purchase.id) total
  from customer join purchase on purchase.customer = customer.id) order by total desc, name limit 5;
update purchase set amount = amount + 1 where note like '%7%';
delete from purchase where amount % 10 = 3;
select count(*), sum(amount), avg(length(note)) from purchase;
